-- A tenant lists all its subscriptions, whatever they are to.

CREATE INDEX subscriptions_of_tenant ON subscriptions (tenant_id, id);
