import numpy as np

numbers = np.arange(12, dtype=float).reshape(3, 4)
print(numbers @ numbers.T, numbers.mean(axis=0), np.linalg.norm(numbers))
print(np.linalg.solve(np.eye(3) * 2, np.ones(3)), np.random.default_rng(5).integers(0, 100, 5))
print(np.fft.fft(np.ones(4)), np.sort(np.array([3, 1, 2]))[::-1])
