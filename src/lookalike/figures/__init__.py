"""Figures with experimental content: data first, picture second.

``params/figures.yaml`` says what each figure shows, what the paper claims about it and which runs it reads; ``entries``
reads and checks that file; ``kinds`` holds what computes and draws each of them, one module per kind; ``form`` is what
such a module offers, ``style`` how all of them look, and ``caption`` the words beside them.
"""
