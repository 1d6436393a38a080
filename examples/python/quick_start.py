"""A first look at wick. Run it: python quick_start.py [MODEL.gguf]"""

import sys

import wick

# Tensors work like NumPy arrays, and every operation accepts transposed and strided views.
x = wick.arange(6.0).reshape(2, 3)
print(x[:, ::-1] + 1)
print(wick.softmax(x @ x.T, dim=-1))

# Dtypes are never promoted implicitly: an error says what to convert.
try:
    x + wick.arange(3)
except wick.Error as error:
    print(error)

# Gradients of any order.
w = wick.tensor([1.0, 2.0, 3.0], requires_grad=True)
loss = (w * w * w).sum()
loss.backward()
print(w.grad)

# The matrix is quantized to blocks of 4 bits, and the product uses these blocks.
matrix = wick.quantize(wick.ones(4, 256), wick.q4_k)
print(matrix, wick.linear(wick.ones(1, 256), wick.Weight(matrix)))

# Runs on every available device.
for device in wick.devices():
    print(device, device.name, (wick.ones(2, device=device) * 2).sum().item())

# Loads a model from a GGUF file.
if len(sys.argv) > 1:
    model = wick.Model.load(sys.argv[1], device="auto")
    for piece in model.stream([{"role": "user", "content": "What is a candle?"}], max_tokens=64):
        print(piece, end="", flush=True)
    print()
