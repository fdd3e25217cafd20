"""A project whose runs go to an SQLite file."""

import shutil

import pytest


@pytest.fixture(scope="session")
def empty_database(tmp_path_factory):
    """MLflow's tables, which take seconds to make."""
    import mlflow

    path = tmp_path_factory.mktemp("mlflow") / "mlflow.db"
    mlflow.MlflowClient(f"sqlite:///{path}").search_experiments()
    return path


@pytest.fixture
def uri(params, monkeypatch, empty_database):
    for name in ("MLFLOW_HTTP_REQUEST_TIMEOUT", "MLFLOW_HTTP_REQUEST_MAX_RETRIES"):
        monkeypatch.delenv(name, raising=False)
    shutil.copy(empty_database, params.parent / "mlflow.db")
    address = f"sqlite:///{params.parent / 'mlflow.db'}"
    monkeypatch.setenv("MLFLOW_TRACKING_URI", address)
    return address
