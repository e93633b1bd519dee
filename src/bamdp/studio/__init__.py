"""Interactive views of a planning agent: ``bamdp studio`` serves a web page, ``bamdp explain`` saves one decision."""
