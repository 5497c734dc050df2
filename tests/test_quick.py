"""Which tests `--quick` takes: what a file or its folder imports decides."""

from __future__ import annotations

from tests.quick import TESTS, is_quick


def test_files_with_a_server_a_browser_training_or_a_process_are_left_out() -> None:
    for file in (
        "app/server/test_api.py",
        "app/jobs/test_worker.py",
        "app/home/test_crash.py",
        "model_updates/strategies/test_strategies.py",
    ):
        assert not is_quick(TESTS / file), file


def test_a_folder_whose_fixtures_need_one_is_left_out() -> None:
    assert not is_quick(TESTS / "app/commands/test_searching.py")
    assert not is_quick(TESTS / "app/ui/test_words.py")


def test_the_others_are_taken() -> None:
    for file in ("index/test_vectors.py", "app/home/test_manifest.py", "app/words/test_strategies.py"):
        assert is_quick(TESTS / file), file
