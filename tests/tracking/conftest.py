"""A project whose runs go to an SQLite file."""

import pytest


@pytest.fixture
def uri(params, monkeypatch):
    for name in ("MLFLOW_HTTP_REQUEST_TIMEOUT", "MLFLOW_HTTP_REQUEST_MAX_RETRIES"):
        monkeypatch.delenv(name, raising=False)
    address = f"sqlite:///{params.parent / 'mlflow.db'}"
    monkeypatch.setenv("MLFLOW_TRACKING_URI", address)
    return address
