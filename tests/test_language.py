"""Documents stay short, and their sentences plain."""

from statistics import fmean

import language

WORDS, MEAN, SHARE = 15_000, 17, 0.06


def test_documents_and_their_sentences_are_short():
    words, lengths = language.counts(language.DOCS)
    assert words <= WORDS
    assert fmean(lengths) < MEAN
    assert fmean(length > language.LONG for length in lengths) <= SHARE


def test_sentences_are_those_of_running_text_and_lists():
    page = """# A heading

A [link](elsewhere.md) counts
as its words. So does `code`:

- an item <!-- quote mean: t; r -->1.0<!-- / -->

```sh
no sentence
```

| no | sentence |
"""
    assert language.sentences(page) == ["A link counts as its words.", "So does `code`:", "an item 1.0"]
