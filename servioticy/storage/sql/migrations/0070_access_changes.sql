-- Whoever was let in is told to go when what let him in is no more: programs listen.

CREATE FUNCTION tell_token() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_notify('servioticy_access', 'token ' || encode(OLD.digest, 'hex'));
    RETURN NULL;
END $$;

CREATE TRIGGER tell_token
 AFTER UPDATE OR DELETE ON tokens
   FOR EACH ROW EXECUTE FUNCTION tell_token();

CREATE FUNCTION tell_readers() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_notify('servioticy_access', 'object ' || NEW.id);
    RETURN NULL;
END $$;

CREATE TRIGGER tell_readers
 AFTER UPDATE OF version, public, deleted_at ON service_objects
   FOR EACH ROW
 EXECUTE FUNCTION tell_readers();
