"""What this worker can do: every function of this file can be called by a task, by its name, and nothing else can.

A generator reports a step with every `yield`; what it returns is the result.
"""

import time


def primes(below):
    """All primes below a number."""
    sieve = bytearray([1]) * max(below, 2)
    sieve[:2] = b"\0\0"
    for n in range(2, int(len(sieve) ** 0.5) + 1):
        if sieve[n]:
            sieve[n * n :: n] = bytes(len(sieve[n * n :: n]))
    return [n for n in range(below) if sieve[n]]


def word_counts(text):
    """How often each word occurs, in two steps."""
    yield "split"
    words = text.lower().split()
    yield "count"
    return {word: words.count(word) for word in sorted(set(words))}


def divide(a, b):
    """Fails when b is 0."""
    return a / b


def nap(seconds):
    """Takes its time: something to cancel."""
    time.sleep(seconds)
    return seconds
