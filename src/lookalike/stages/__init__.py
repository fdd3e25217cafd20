"""What each rule of the workflow does, one module and one function per stage, named after it.

Arguments are paths and plain values, since they arrive from Snakemake by way of JSON.
"""
