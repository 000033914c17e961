-- What others have used of a tenant that goes is theirs to pay: it stays, and names it no more.

COMMENT ON COLUMN usage_hours.provider_id IS
    'whose stream woke the computations, or was delivered; the tenant itself, who granted it, or 0: one that has gone';

SELECT for_all_tenants('servioticy_platform', 'INSERT', '{usage_hours}');
SELECT for_all_tenants('servioticy_platform', 'UPDATE', '{usage_hours}');
GRANT INSERT, UPDATE ON usage_hours TO servioticy_platform;
