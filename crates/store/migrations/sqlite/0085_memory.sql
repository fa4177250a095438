-- The most memory that the processes of a run took, by what they ran, in bytes: the next one is admitted by it.
CREATE TABLE template_memory (
    template TEXT NOT NULL,
    version BIGINT NOT NULL,
    engine TEXT NOT NULL,
    bytes BIGINT NOT NULL,
    PRIMARY KEY (template, version, engine)
);
