"""Trains a small network to separate two spirals, with layers and an optimizer written by hand.

The program generates the data and draws the loss of every step.
Run it: python two_spirals.py [--steps N] [--picture FILE.svg] [--device cuda:0]
"""

from __future__ import annotations

import argparse
import math
import random

import wick


def spirals(points: int, device: str) -> tuple[wick.Tensor, wick.Tensor]:
    """Returns points [2 * points, 2] on two spiral arms, and the arm of each, -1 or 1."""
    places: list[list[float]] = []
    arms: list[list[float]] = []
    for i in range(points):
        angle = 3.5 * math.pi * math.sqrt((i + 1) / points)
        radius = angle / (3.5 * math.pi)
        for arm in (-1.0, 1.0):
            places.append([arm * radius * math.cos(angle), arm * radius * math.sin(angle)])
            arms.append([arm])
    return wick.tensor(places, device=device), wick.tensor(arms, device=device)


class Linear:
    """Multiplies x by a matrix and adds a bias."""

    def __init__(self, inputs: int, outputs: int, rng: random.Random, device: str) -> None:
        bound = math.sqrt(3 / inputs)
        rows = [[rng.uniform(-bound, bound) for _ in range(outputs)] for _ in range(inputs)]
        self.weight = wick.tensor(rows, device=device, requires_grad=True)
        self.bias = wick.zeros(outputs, device=device, requires_grad=True)

    def __call__(self, x: wick.Tensor) -> wick.Tensor:
        return x @ self.weight + self.bias


class Network:
    """Three linear layers with tanh in between."""

    def __init__(self, hidden: int, rng: random.Random, device: str) -> None:
        sizes = [2, hidden, hidden, 1]
        self.layers = [Linear(a, b, rng, device) for a, b in zip(sizes, sizes[1:])]

    def __call__(self, x: wick.Tensor) -> wick.Tensor:
        for layer in self.layers[:-1]:
            x = layer(x).tanh()
        return self.layers[-1](x)


class Adam:
    """Adam (Kingma and Ba, 2015): steps along gradients that are divided by their typical magnitude."""

    def __init__(self, layers: list[Linear], rate: float) -> None:
        self.layers, self.rate, self.steps = layers, rate, 0
        self.moments = {(layer, name): (wick.zeros_like(getattr(layer, name)),) * 2
                        for layer in layers for name in ("weight", "bias")}

    @wick.no_grad()
    def step(self) -> None:
        self.steps += 1
        for (layer, name), (mean, square) in self.moments.items():
            parameter: wick.Tensor = getattr(layer, name)
            gradient = parameter.grad
            assert gradient is not None
            mean = mean * 0.9 + gradient * 0.1
            square = square * 0.99 + gradient * gradient * 0.01
            self.moments[layer, name] = mean, square
            scaled = (mean / (1 - 0.9**self.steps)) / ((square / (1 - 0.99**self.steps)).sqrt() + 1e-8)
            # Tensors are immutable, so the layer gets new ones.
            setattr(layer, name, (parameter - scaled * self.rate).detach().requires_grad_())


def margin_loss(scores: wick.Tensor, arms: wick.Tensor) -> wick.Tensor:
    """Returns the mean of log(1 + exp(-score · arm))."""
    return -((scores * arms).sigmoid() + 1e-12).log().mean()


def write_curve(path: str, losses: list[float]) -> None:
    """Draws the losses on a logarithmic scale as an SVG."""
    width, height, margin = 640, 400, 50
    low = math.floor(math.log10(min(losses)))
    high = math.ceil(math.log10(max(losses)))

    def across(step: float) -> float:
        return margin + (width - 2 * margin) * step / max(len(losses) - 1, 1)

    def down(power: float) -> float:
        return margin + (height - 2 * margin) * (high - power) / max(high - low, 1)

    line = " ".join(f"{across(i):.1f},{down(math.log10(v)):.1f}" for i, v in enumerate(losses))
    with open(path, "w") as file:
        file.write(f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
                   'font-family="sans-serif" font-size="12">\n<rect width="100%" height="100%" fill="white"/>\n')
        for power in range(low, high + 1):
            file.write(f'<line x1="{margin}" x2="{width - margin}" y1="{down(power):.1f}" y2="{down(power):.1f}" '
                       f'stroke="#ddd"/><text x="8" y="{down(power) + 4:.1f}">1e{power}</text>\n')
        for step in range(0, len(losses), max(len(losses) // 5, 1)):
            file.write(f'<text x="{across(step):.1f}" y="{height - margin + 20}" text-anchor="middle">{step}</text>\n')
        file.write(f'<text x="{width / 2}" y="{height - 8}" text-anchor="middle">step</text>\n'
                   f'<text x="{width / 2}" y="24" text-anchor="middle">Loss of two spirals</text>\n'
                   f'<polyline points="{line}" fill="none" stroke="#c33" stroke-width="1.5"/>\n</svg>\n')


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=1500)
    parser.add_argument("--hidden", type=int, default=32)
    parser.add_argument("--picture", default="two_spirals.svg")
    parser.add_argument("--device", default="cpu")
    options = parser.parse_args()

    x, arms = spirals(97, options.device)
    network = Network(options.hidden, random.Random(1), options.device)
    adam = Adam(network.layers, rate=0.02)
    losses: list[float] = []
    for step in range(options.steps):
        for layer in network.layers:
            layer.weight.zero_grad()
            layer.bias.zero_grad()
        loss = margin_loss(network(x), arms)
        loss.backward()
        adam.step()
        losses.append(loss.item())
        if step % 250 == 0:
            print(f"step {step:4}: loss {loss:.5f}")
    with wick.no_grad():
        signs = [a * b for (a,), (b,) in zip(network(x).tolist(), arms.tolist())]
    right = sum(s > 0 for s in signs) / len(signs)
    print(f"after {options.steps} steps: loss {losses[-1]:.5f}, {right:.1%} right")
    write_curve(options.picture, losses)
    print(f"the curve is in {options.picture}")
    return 0 if right == 1 else 1


if __name__ == "__main__":
    raise SystemExit(main())
