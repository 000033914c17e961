-- What others have granted to a tenant that is deleted goes a piece at a time: each tells both
-- sides, and thousands at once would take longer than a statement may.

SELECT for_all_tenants('servioticy_platform', 'DELETE', '{grants}');
GRANT DELETE ON grants TO servioticy_platform;
