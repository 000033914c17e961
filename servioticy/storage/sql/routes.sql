-- routes --
-- Between tenants: what comes together is of many.
-- Where they are routed; below zero: they leave that partition (`placement.py`).
SELECT id, route_partition
  FROM service_objects
 WHERE id = ANY(%(ids)s::text[]);
