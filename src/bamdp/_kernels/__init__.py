"""Compiled primitives shared by several subpackages; they operate on arrays, without classes or I/O."""
