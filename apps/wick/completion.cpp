// `wick completion`: scripts for shells, made of the tables of options that CLI11 holds.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "common.h"
#include "wick/base/error.h"
#include "wick/base/printable.h"
#include "wick/io/file_type.h"

namespace wick::cli {
namespace {

/// What an option's value is completed to.
struct Values {
  bool files = false, models = false;  ///< models: files and names in the user's cache
  std::string words;                   ///< separated by blanks
};

/// An option or a positional argument of a command.
struct Entry {
  std::vector<std::string> names;  ///< "-m", "--model"; none for positionals
  std::string help;
  bool takes_value = false;
  Values values;

  std::string joined(std::string_view between, const std::string& prefix = {}) const {
    std::string all;
    for (const std::string& name : names) {
      all += fmt::format("{}{}{}", all.empty() ? "" : between, prefix, name);
    }
    return all;
  }
};

struct Command {
  std::string name, help;
  std::vector<Entry> options, positionals;
};

std::string names_of(DTypeSet types) {
  std::string all;
  for (int d = 0; d < kDTypeCount; ++d) {
    const auto type = static_cast<DType>(d);
    if (types.contains(type)) all += fmt::format("{}{}", all.empty() ? "" : " ", name(type));
  }
  return all;
}

std::string file_type_words() {
  std::string all;
  for (const io::FileType& type : io::file_types()) {
    all += fmt::format("{}{}", all.empty() ? "" : " ", type.name);
  }
  return all;
}

Values values_of(const CLI::App& app, const std::string& command, const CLI::Option& option) {
  const std::string name =
      option.get_lnames().empty() ? option.get_name(true) : option.get_lnames()[0];
  const std::string type = option.get_type_name();
  Values values;
  if (name == "model" || (command == "inspect" && name == "FILE") || name == "IN") {
    values.models = true;
  } else if (name == "device") {
    values.words = "auto cpu cuda:0 hip:0";
  } else if (name == "gpu-layers" || name == "cpu-experts") {
    values.words = "auto all";
  } else if (name == "cache-type") {
    values.words = names_of(dtypes::kCaches);
  } else if (name == "TYPE") {
    values.words = file_type_words();
  } else if (name == "output-type" || name == "token-embedding-type") {
    values.words = names_of(dtypes::kWeightFiles);
  } else if (name == "COMMAND") {
    values.words = command_names(app).substr(1);
  } else if (name == "SHELL") {
    values.words = "bash zsh fish";
  } else {
    values.files = name == "OUT" || type.starts_with("FILE") || type.starts_with("DIR");
  }
  return values;
}

std::vector<Command> commands_of(const CLI::App& app) {
  std::vector<Command> commands;
  for (const CLI::App* sub : app.get_subcommands([](const CLI::App*) { return true; })) {
    Command command{sub->get_name(), sub->get_description(), {}, {}};
    for (const CLI::Option* option : sub->get_options()) {
      Entry entry;
      for (const std::string& s : option->get_snames()) entry.names.push_back("-" + s);
      for (const std::string& l : option->get_lnames()) entry.names.push_back("--" + l);
      entry.help = option->get_description();
      entry.takes_value = option->get_items_expected_max() > 0;
      if (entry.takes_value) entry.values = values_of(app, command.name, *option);
      (option->get_positional() ? command.positionals : command.options).push_back(entry);
    }
    commands.push_back(std::move(command));
  }
  return commands;
}

/// Names of the models in the user's cache, for bash and zsh.
constexpr const char* kModelsInCache =
    "(cd \"${XDG_CACHE_HOME:-$HOME/.cache}/wick/models\" 2>/dev/null && ls)";

// The arguments: names of models, commands, options of commands, actions of their values and of
// positional arguments.
constexpr const char* kBashScript = R"(# Completion of wick for bash: source <(wick completion bash)
_wick_words() {{ mapfile -t COMPREPLY < <(compgen -W "$1" -- "$word"); }}
_wick_files() {{
  compopt -o filenames 2>/dev/null
  mapfile -t COMPREPLY < <(compgen -f -- "$word")
}}
_wick_models() {{
  _wick_files
  local model
  while read -r model; do
    [[ $model == "$word"* ]] && COMPREPLY+=("$model")
  done < <{}
}}
# Joins what bash splits at = and :, as cuda:0 and --option=value. Sets words, and kept to the part
# of the last word that bash keeps.
_wick_join() {{
  local part joins=0
  words=() kept=""
  for part in "${{COMP_WORDS[@]:0:COMP_CWORD+1}}"; do
    if (( ${{#words[@]}} > 1 )) && [[ $part =~ ^[=:]+$ ]]; then
      words[-1]+=$part joins=1 kept=${{words[-1]}}
    elif (( joins )) && [[ $part ]]; then
      words[-1]+=$part joins=0
    else
      words+=("$part") joins=0 kept=""
    fi
  done
}}
_wick() {{
  local words kept word before command options="" valued="" name="" place=0 i
  COMPREPLY=()
  _wick_join
  word=${{words[-1]}} before=${{words[-2]}} command=${{words[1]}}
  if (( ${{#words[@]}} == 2 )); then
    _wick_words "{} --help --version"
    return
  fi
  case $command in
{}  esac
  # Values of short options don't follow =.
  if [[ $word == --*=* ]]; then before=${{word%%=*}} name=${{word%%=*}}= word=${{word#*=}}
  elif [[ $word == -*=* ]]; then return
  fi
  _wick_value
  (( ${{#COMPREPLY[@]}} )) || return
  # Bash replaces only what follows the last = or :.
  for (( i = 0; i < ${{#COMPREPLY[@]}}; ++i )); do
    COMPREPLY[i]=$name${{COMPREPLY[i]}}
    COMPREPLY[i]=${{COMPREPLY[i]#"$kept"}}
  done
}}
_wick_value() {{
  case $command:$before in
{}  esac
  [[ $name ]] && return
  if [[ $word == -* ]]; then
    _wick_words "$options"
    return
  fi
  for (( i = 2; i < ${{#words[@]}} - 1; ++i )); do
    if [[ $valued == *" ${{words[i]}} "* ]]; then (( ++i ))
    elif [[ ${{words[i]}} != -* ]]; then (( ++place ))
    fi
  done
  case $command:$place in
{}  esac
}}
complete -F _wick wick
)";

std::string bash_action(const Values& values) {
  if (values.models) return "_wick_models";
  if (values.files) return "_wick_files";
  return values.words.empty() ? ":" : fmt::format("_wick_words \"{}\"", values.words);
}

std::string bash_script(const std::vector<Command>& commands) {
  std::string names, options, values, actions, places;
  for (const Command& command : commands) {
    names += fmt::format("{}{}", names.empty() ? "" : " ", command.name);
    std::string all, valued;
    for (const Entry& entry : command.options) {
      all += fmt::format("{}{}", all.empty() ? "" : " ", entry.joined(" "));
      if (!entry.takes_value) continue;
      valued += fmt::format(" {}", entry.joined(" "));
      actions += fmt::format("    {}) {}; return ;;\n", entry.joined("|", command.name + ":"),
                             bash_action(entry.values));
    }
    options += fmt::format("    {}) options=\"{}\" valued=\"{} \" ;;\n", command.name, all, valued);
    for (size_t i = 0; i < command.positionals.size(); ++i) {
      places += fmt::format("    {}:{}) {} ;;\n", command.name, i,
                            bash_action(command.positionals[i].values));
    }
  }
  return fmt::format(kBashScript, kModelsInCache, names, options, actions, places);
}

// The arguments: names of models, commands with their help, arguments of commands. The body of an
// autoloaded file is the function at its first use, so the last line completes then.
constexpr const char* kZshScript = R"zsh(#compdef wick
# Completion of wick for zsh: wick completion zsh > DIR/_wick, with DIR in $fpath
_wick_models() {{
  _files
  compadd -- ${{(f)"$( {} )"}}
}}
_wick() {{
  local -a commands
  commands=(
{}  )
  if (( CURRENT == 2 )); then
    _describe command commands
    return
  fi
  local command=$words[2]
  shift words
  (( CURRENT-- ))
  case $command in
{}  esac
}}
if [ "$funcstack[1]" = "_wick" ]; then _wick "$@"; else compdef _wick wick; fi
)zsh";

/// Escapes text inside single quotes of zsh, in which the characters `special` have a meaning.
std::string zsh_text(const std::string& text, std::string_view special) {
  std::string out;
  for (const char c : text) {
    if (c == '\'') {
      out += "'\\''";
    } else {
      if (special.find(c) != std::string_view::npos) out += '\\';
      out += c;
    }
  }
  return out;
}

std::string zsh_action(const Values& values) {
  if (values.models) return ":model:_wick_models";
  if (values.files) return ":file:_files";
  if (values.words.empty()) return ":value: ";
  return fmt::format(":word:({})", zsh_text(values.words, ":"));
}

std::string zsh_script(const std::vector<Command>& commands) {
  std::string list, cases;
  for (const Command& command : commands) {
    list += fmt::format("    '{}:{}'\n", command.name, zsh_text(command.help, ":"));
    cases += fmt::format("    {}) _arguments -s", command.name);
    for (const Entry& entry : command.options) {
      for (const std::string& name : entry.names) {
        cases += fmt::format(" \\\n      '*{}{}[{}]{}'", name,
                             entry.takes_value && name.starts_with("--") ? "=" : "",
                             zsh_text(entry.help, "[]:\\"),
                             entry.takes_value ? zsh_action(entry.values) : "");
      }
    }
    for (size_t i = 0; i < command.positionals.size(); ++i) {
      cases += fmt::format(" \\\n      '{}{}'", i + 1, zsh_action(command.positionals[i].values));
    }
    cases += " ;;\n";
  }
  return fmt::format(kZshScript, kModelsInCache, list, cases);
}

constexpr const char* kFishScript =
    R"(# Completion of wick for fish: wick completion fish > ~/.config/fish/completions/wick.fish
function __wick_models
  set -l cache $HOME/.cache
  set -q XDG_CACHE_HOME; and set cache $XDG_CACHE_HOME
  ls $cache/wick/models 2>/dev/null
end
complete -c wick -f
)";

/// Escapes text inside single quotes of fish.
std::string fish_text(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '\'' || c == '\\') out += '\\';
    out += c;
  }
  return out;
}

std::string fish_values(const Values& values) {
  if (values.models) return " -F -a '(__wick_models)'";
  if (values.files) return " -F";
  return values.words.empty() ? " -f" : fmt::format(" -f -a '{}'", fish_text(values.words));
}

std::string fish_script(const std::vector<Command>& commands) {
  std::string script = kFishScript;
  for (const Command& command : commands) {
    script += fmt::format("complete -c wick -n __fish_use_subcommand -a {} -d '{}'\n", command.name,
                          fish_text(command.help));
    const std::string seen =
        fmt::format("complete -c wick -n '__fish_seen_subcommand_from {}'", command.name);
    for (const Entry& entry : command.options) {
      script += seen;
      for (const std::string& name : entry.names) {
        const bool is_long = name.starts_with("--");
        script += fmt::format(" -{} {}", is_long ? "l" : "s", name.substr(is_long ? 2 : 1));
      }
      if (entry.takes_value) script += " -r" + fish_values(entry.values);
      script += fmt::format(" -d '{}'\n", fish_text(entry.help));
    }
    for (const Entry& entry : command.positionals) {
      script += seen + fish_values(entry.values) + "\n";
    }
  }
  return script;
}

}  // namespace

void add_completion(CLI::App& app) {
  auto shell = std::make_shared<std::string>();
  CLI::App* command = app.add_subcommand("completion", "Print a script that completes commands");
  command->footer(
      "The script completes commands, options, files, models of the cache, devices and types.\n"
      "bash: source <(wick completion bash)\n"
      "zsh:  wick completion zsh > DIR/_wick, with DIR in $fpath before compinit\n"
      "fish: wick completion fish > ~/.config/fish/completions/wick.fish");
  command->add_option("SHELL", *shell, "bash, zsh or fish")->required();
  command->callback([&app, shell] {
    const std::vector<Command> commands = commands_of(app);
    if (*shell == "bash") return print(bash_script(commands));
    if (*shell == "zsh") return print(zsh_script(commands));
    if (*shell == "fish") return print(fish_script(commands));
    throw Error("completion", "no such shell", fmt::format("'{}'", printable(*shell)),
                "use bash, zsh or fish");
  });
}

}  // namespace wick::cli
