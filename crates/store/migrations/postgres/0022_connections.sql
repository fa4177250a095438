-- A tenant's credentials. Only the newest values are kept, sealed; the names of what is in them are for those who look.
CREATE TABLE connections (
    tenant TEXT NOT NULL REFERENCES tenants (name),
    name TEXT NOT NULL,
    version BIGINT NOT NULL,
    names TEXT NOT NULL,
    sealed BYTEA NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    PRIMARY KEY (tenant, name)
);

-- Which variables of a generation get their values from which connection.
CREATE TABLE generation_connections (
    deployment TEXT NOT NULL,
    generation BIGINT NOT NULL,
    tenant TEXT NOT NULL,
    connection TEXT NOT NULL,
    variables TEXT NOT NULL,
    PRIMARY KEY (deployment, generation, connection)
);
CREATE INDEX generation_connections_by_name ON generation_connections (tenant, connection);
