"""Common parts of the figures: form, caption, style, panels and tiles, trends and networks."""
