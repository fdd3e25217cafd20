"""Stages of the workflow's rules, one module and one function per stage, named after it; reports lie in `report`.

Rules name the arguments, which are paths and plain values, since they may come by way of JSON. They mean the same in
all stages, and a stage's own docstring says the rest:

- ``model``: safetensors of a training; ``embeddings``: safetensors of the stage ``embed``;
- ``manifest``: CSV of the split; ``root``: folder of its pictures;
- ``decoded``, ``decoded_gb``: folder and limit of a `lookalike.workflow.training.images.Decoder`;
- ``workers``: loading processes; ``code``: digest of the code behind the result;
- ``scale``: what the scale calls itself; ``dataset``, ``table``: names;
- ``config``: configuration of the call; ``archives``: folder with archives that are on disk already.
"""
