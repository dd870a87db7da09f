"""Small models written to be exported wrongly, random formulas over sizes, and a checker that trusts nothing of ours.

rows.py      what a row is: a model, its inputs by kind, what to try
models/      the table, one file per family
formulas.py  random Python functions of sizes inside small modules, by seed
check.py     exports a row, reads the contract, and compares ONNX Runtime with plain eager within it
compare.py   eager and the file side by side
run_hostile.py  the table and any number of formulas from the command line
"""
