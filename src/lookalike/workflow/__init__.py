"""The workflow: from data sets to tables, figures, claims and pages."""
