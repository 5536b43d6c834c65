"""Documents that people paste whole: API answers, benchmark tables, exports of load generators.

One module per format with `recognises(text)` and `read(text)`; `registry` finds them.
"""
