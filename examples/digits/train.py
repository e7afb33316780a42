#!/usr/bin/env python3
"""Trains the small network of the handwritten-digits example and writes its weights and the held-out images.

  pip install numpy scikit-learn
  python3 train.py          writes digits.weights and digits.test beside itself

Data: scikit-learn's copy of the UCI ML handwritten digits (1797 images of 8x8 pixels, 0..16). Every fifth image is held out and never trained on.
Network: conv 3x3 1->16, relu, conv 3x3 16->32, relu, max pool 2x2, conv 3x3 32->32, relu, fully connected 512->10. NHWC, padding 1.
digits.weights: little-endian f32, per layer the weights (convolutions OHWI, the last layer [512][10]) and then the bias.
digits.test: per image 64 bytes of pixels and one byte of label.
"""
import pathlib

import numpy as np
from sklearn.datasets import load_digits

rng = np.random.default_rng(1)
data = load_digits()
images, labels = data.images.astype(np.float32), data.target
held_out = np.arange(len(images)) % 5 == 4
train_x, train_y = images[~held_out] / 16, labels[~held_out]
test_x, test_y = images[held_out] / 16, labels[held_out]

layers = [(1, 16), (16, 32), (32, 32)]
params = []
for cin, cout in layers:
    params += [rng.normal(0, np.sqrt(2 / (9 * cin)), (cout, 3, 3, cin)).astype(np.float32), np.zeros(cout, np.float32)]
params += [rng.normal(0, np.sqrt(1 / 512), (512, 10)).astype(np.float32), np.zeros(10, np.float32)]


def columns(x):  # [n, h, w, c] -> [n, h, w, 9c], zeros around
    p = np.pad(x, ((0, 0), (1, 1), (1, 1), (0, 0)))
    h, w = x.shape[1:3]
    return np.concatenate([p[:, i:i + h, j:j + w] for i in range(3) for j in range(3)], axis=3)


def forward(x):
    kept, x = [], x[..., None]
    for i in range(3):
        cols = columns(x)
        y = np.maximum(cols @ params[2 * i].reshape(params[2 * i].shape[0], -1).T + params[2 * i + 1], 0)
        kept.append((cols, y))
        x = y
        if i == 1:
            n, h, w, c = x.shape
            blocks = x.reshape(n, h // 2, 2, w // 2, 2, c)
            x = blocks.max(axis=(2, 4))
            kept.append((blocks, x))
    flat = x.reshape(len(x), -1)
    return kept, flat, flat @ params[6] + params[7]


def gradients(x, y):
    kept, flat, logits = forward(x)
    p = np.exp(logits - logits.max(1, keepdims=True))
    p /= p.sum(1, keepdims=True)
    d = p.copy()
    d[np.arange(len(y)), y] -= 1
    d /= len(y)
    g = [None] * 8
    g[6], g[7] = flat.T @ d, d.sum(0)
    d = (d @ params[6].T).reshape(len(x), 4, 4, 32)
    for i in (2, 1, 0):
        if i == 1:
            blocks, top = kept[2]
            winners = blocks == top[:, :, None, :, None, :]
            winners = winners / winners.sum(axis=(2, 4), keepdims=True)
            d = (winners * d[:, :, None, :, None, :]).reshape(len(x), 8, 8, 32)
        cols, y_ = kept[3] if i == 2 else kept[i]
        d = d * (y_ > 0)
        w = params[2 * i]
        g[2 * i] = np.tensordot(d, cols, ((0, 1, 2), (0, 1, 2))).reshape(w.shape)
        g[2 * i + 1] = d.sum((0, 1, 2))
        if i:
            dc = d @ w.reshape(w.shape[0], -1)
            h, wd, c = d.shape[1], d.shape[2], w.shape[3]
            back = np.zeros((len(x), h + 2, wd + 2, c), np.float32)
            for k in range(9):
                back[:, k // 3:k // 3 + h, k % 3:k % 3 + wd] += dc[..., k * c:(k + 1) * c]
            d = back[:, 1:-1, 1:-1]
    return g


m = [np.zeros_like(p) for p in params]
v = [np.zeros_like(p) for p in params]
step, epochs, batch = 0, 40, 32
for epoch in range(epochs):
    order = rng.permutation(len(train_x))
    rate = 2e-3 * 0.5 * (1 + np.cos(np.pi * epoch / epochs))
    for at in range(0, len(order), batch):
        pick = order[at:at + batch]
        x = train_x[pick]
        shift = rng.integers(-1, 2, 2)  # augmentation: one pixel in any direction
        x = np.roll(x, shift, axis=(1, 2))
        step += 1
        for i, g in enumerate(gradients(x, train_y[pick])):
            m[i] = 0.9 * m[i] + 0.1 * g
            v[i] = 0.999 * v[i] + 0.001 * g * g
            params[i] -= (rate * (m[i] / (1 - 0.9**step) / (np.sqrt(v[i] / (1 - 0.999**step)) + 1e-8) + 1e-4 * params[i])).astype(np.float32)
    if epoch % 5 == 4:
        accuracy = (forward(test_x)[2].argmax(1) == test_y).mean()
        print(f"epoch {epoch + 1:2d}: held-out accuracy {accuracy:.4f}")

here = pathlib.Path(__file__).resolve().parent
np.concatenate([p.ravel() for p in params]).astype("<f4").tofile(here / "digits.weights")
with open(here / "digits.test", "wb") as f:
    for x, y in zip(images[held_out], test_y):
        f.write(bytes(x.astype(np.uint8).ravel()) + bytes([int(y)]))
