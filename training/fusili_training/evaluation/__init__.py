"""The paper's evaluation: local alignment, global retrieval, point-and-retrieve, and onset errors.

Data flows top to bottom: a source gives the pairs of a piece (`sources`), `pair_encoder` gives their embeddings,
the metrics (`local`, `point_and_retrieve`, `global_retrieval`, `onset_errors`) count piece by piece, `bootstrap`
puts an interval around each number, and `tables` and `plots` show them. Only `sinkhorn_ranking` needs torch.
"""
