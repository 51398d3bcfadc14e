-- What a kernel used, all in all: JSON in the form that clients read.
ALTER TABLE kernels ADD COLUMN last_stat TEXT;

-- What was used in some minutes, for a month: a row for each time and owner,
-- JSON {"cpu_util":[unit,show,stats,min,max,sum,count],...}.
CREATE TABLE statistics_series (
    owner    TEXT    NOT NULL, -- id of a kernel, or 'agent:ID'
    at       INTEGER NOT NULL, -- of the first sample
    until_at INTEGER NOT NULL, -- of the last
    data     TEXT    NOT NULL,
    PRIMARY KEY (owner, at)
) WITHOUT ROWID;
CREATE INDEX statistics_series_by_time ON statistics_series (at);
