CREATE TABLE IF NOT EXISTS test (
  build_commit TEXT,
  n_prompt INTEGER
);

INSERT INTO test (build_commit, build_number, model_type, n_batch, n_threads, n_prompt, n_gen, n_depth, avg_ns, stddev_ns, avg_ts, stddev_ts) VALUES ('abc1234', '5100', 'wren''s 7B (Q4_0)', '2048', '4', '256', '0', '0', '1', '1', '640.125000', '3.500000');
INSERT INTO test (build_commit, build_number, model_type, n_batch, n_threads, n_prompt, n_gen, n_depth, avg_ns, stddev_ns, avg_ts, stddev_ts) VALUES ('abc1234', '5100', 'wren''s 7B (Q4_0)', '2048', '4', '256', '32', '512', '1', '1', '88.000000', '0.500000');
