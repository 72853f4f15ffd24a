import io

import numpy as np
import pytest
from rich.console import Console

import encoders
from encoders.experiments.encoding import encode
from encoders.experiments.labelling import labelled_texts
from encoders.experiments.progress import ProgressDisplay
from encoders.experiments.tokenizers import shared_tokenizer
from encoders.experiments.training import fine_tune
from tests.encoders.experiments.samples import sentence_rows

DATA = labelled_texts(sentence_rows(), name="data.csv")
TOKENIZER = shared_tokenizer(DATA.train.texts)
EXAMPLES = encode(DATA, TOKENIZER, max_length=None).examples


def build():
    return encoders.create(
        "distilbert-nano", task="sequence-classification", num_labels=2, vocab_size=len(TOKENIZER), pad_token_id=0
    )


def accuracy(outputs: np.ndarray, labels: np.ndarray) -> float:
    return float((outputs.argmax(axis=1) == labels).mean())


def train(seed: int, epochs: int = 1, quality=accuracy, **options):
    options = {"quality": quality, "seed": seed, "epochs": epochs, "batch_size": 8, "learning_rate": 1e-3, **options}
    return fine_tune(build, EXAMPLES, TOKENIZER, **options)


def test_the_same_seed_gives_the_same_outputs_and_another_seed_others():
    first, again, other = train(seed=3), train(seed=3), train(seed=4)
    for split in ("dev", "test"):
        np.testing.assert_array_equal(first[split][0], again[split][0])
        np.testing.assert_array_equal(first[split][1], again[split][1])
        assert np.abs(first[split][0] - other[split][0]).max() > 1e-3


def test_outputs_come_with_the_labels_of_their_rows():
    outputs = train(seed=0, epochs=8)
    assert outputs.keys() == {"dev", "test"}
    for split, (logits, labels) in outputs.items():
        assert logits.shape == (len(DATA.splits[split].texts), 2)
        assert sorted(labels.tolist()) == sorted(DATA.labels(split))
        assert accuracy(logits, labels) > 0.8


def test_the_best_epoch_on_dev_is_the_one_that_counts():
    seen: list[np.ndarray] = []

    def second_is_best(outputs: np.ndarray, labels: np.ndarray) -> float:
        seen.append(outputs)
        return [0.1, 0.9, 0.2][len(seen) - 1] if len(seen) <= 3 else 0.0

    outputs = train(seed=0, epochs=3, quality=second_is_best)
    np.testing.assert_allclose(outputs["dev"][0], seen[1], rtol=1e-5)
    assert np.abs(seen[1] - seen[2]).max() > 1e-3


def test_training_prints_nothing_and_leaves_nothing(capfd: pytest.CaptureFixture[str], monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    train(seed=0)
    assert capfd.readouterr().out == ""
    assert list(tmp_path.iterdir()) == []


def test_bars_are_drawn_on_a_terminal_only():
    for terminal in (True, False):
        text = io.StringIO()
        console = Console(file=text, force_terminal=terminal, width=100)
        with ProgressDisplay(console, runs=1) as progress:
            train(seed=0, callbacks=[progress.steps_of("distilbert-nano, seed 0")])
            progress.finish_run("finished")
        assert "finished" in text.getvalue()
        assert ("distilbert-nano, seed 0" in text.getvalue()) is terminal
