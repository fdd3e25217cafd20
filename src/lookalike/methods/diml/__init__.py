"""DIML, structural matching for interpretable deep metric learning (ICCV 2021): images compared place by place."""
