"""Compiled primitives that several rooms share: arrays in, arrays out, no classes, no I/O."""
