"""Options of the command line: a parser whose errors are one line, and types of values."""

import argparse
import pathlib


class Parser(argparse.ArgumentParser):
    def error(self, message):
        self.exit(2, f"{self.prog}: {message}\n")


def positive(text):
    """The type of options that are numbers of at least 1."""
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text} isn't a number of at least 1")
    return number


def duration(text):
    """The type of options that are seconds, or a factor of them."""
    number = float(text)
    if not 0 < number <= 1e6:
        raise argparse.ArgumentTypeError(f"{text} isn't above 0 and at most a million")
    return number


def existing(text):
    """The type of options that name a file or folder, which must exist."""
    path = pathlib.Path(text).absolute()
    if not path.exists():
        raise argparse.ArgumentTypeError(f"there is no {path}")
    return path


def some_of(known, what):
    """The type of options that are lists with commas. known: the words that may occur. what: one of them is called."""
    def words(text):
        chosen = list(dict.fromkeys(word for word in text.split(",") if word))
        for word in chosen:
            if word not in known:
                raise argparse.ArgumentTypeError(f"there is no {what} {word}; known are {', '.join(known)}")
        if not chosen:
            raise argparse.ArgumentTypeError(f"no {what} was chosen; known are {', '.join(known)}")
        return chosen
    return words
