"""What all figures share: style, layout, choice of rows, values in the SVG."""
