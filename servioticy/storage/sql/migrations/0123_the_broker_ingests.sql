-- The broker takes updates itself, so it asks of their tenants what the API does: how many bytes
-- they have stored, and how many updates wait to be computed. Of the tenants that it names alone.

GRANT SELECT ON stored_amounts, put_off TO servioticy_delivery;
