"""The studio: a window on an agent that plans. ``bamdp studio`` serves it as a web page, ``bamdp explain`` writes one
decision to a file.
"""
