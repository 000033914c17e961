// What scripts may use under the name `iot`: documented in docs/scripts.md. Plain functions
// of their arguments and of the trigger's time, as a script could write them itself.
(function (clock) {
  "use strict";
  const { isArray } = Array;
  const { isFinite } = Number;
  const { abs, asin, cos, floor, min, sin, sqrt, PI } = Math;
  const toNumber = Number;
  const toText = String;
  const { keys, hasOwn } = Object;
  const exec = Function.prototype.call.bind(RegExp.prototype.exec);
  const POINT = /^\s*([+-]?[\d.]+(?:[eE][+-]?\d+)?)\s*,\s*([+-]?[\d.]+(?:[eE][+-]?\d+)?)\s*$/;
  const EARTH_METRES = 6371008.8; // the mean radius of the IUGG
  const RADIANS = PI / 180;

  const number = (value) => typeof value === "number" && isFinite(value);

  function valueOf(update, channel) {
    if (typeof update !== "object" || update === null) return null;
    const { channels } = update;
    if (typeof channels !== "object" || channels === null) return null;
    if (channel === undefined) {
      const names = keys(channels);
      if (names.length !== 1) return null;
      channel = names[0];
    }
    if (!hasOwn(channels, channel)) return null;
    const found = channels[channel];
    if (typeof found !== "object" || found === null) return null;
    return hasOwn(found, "current-value") ? found["current-value"] : null;
  }

  function age(update) {
    if (typeof update !== "object" || update === null || !number(update.lastUpdate)) return null;
    return (clock.began() - clock.milliseconds(update.lastUpdate)) / 1000;
  }

  function clamp(value, least, most) {
    if (!number(value)) return null;
    return value < least ? least : value > most ? most : value;
  }

  // Halves away from zero, of the number as it is written: 1.005 to two digits is 1.01.
  function round(value, digits = 0) {
    if (!number(value)) return null;
    if (!(digits >= 0 && digits <= 15)) return value;
    const [mantissa, exponent = 0] = parts(abs(value));
    const raised = toNumber(mantissa + "e" + (toNumber(exponent) + digits));
    if (raised >= 4503599627370496) return value; // whole already
    const [whole, power = 0] = parts(floor(raised + 0.5));
    const result = toNumber(whole + "e" + (toNumber(power) - digits));
    return value < 0 && result !== 0 ? -result : result;
  }

  function parts(value) {
    const text = toText(value);
    for (let at = 0; at < text.length; at++) {
      if (text[at] === "e") {
        let exponent = "";
        for (let i = at + 1; i < text.length; i++) exponent += text[i];
        let mantissa = "";
        for (let i = 0; i < at; i++) mantissa += text[i];
        return [mantissa, exponent];
      }
    }
    return [text];
  }

  // [latitude, longitude], or null; in the forms that a geo_point channel takes.
  function point(place) {
    let latitude;
    let longitude;
    if (typeof place === "string") {
      const found = exec(POINT, place);
      if (found === null) return null;
      latitude = toNumber(found[1]);
      longitude = toNumber(found[2]);
    } else if (isArray(place)) {
      if (place.length !== 2) return null;
      longitude = place[0];
      latitude = place[1];
    } else if (typeof place === "object" && place !== null) {
      latitude = place.lat;
      longitude = place.lon;
    }
    return number(latitude) && number(longitude) ? [latitude, longitude] : null;
  }

  function distance(from, to) {
    const start = point(from);
    const end = point(to);
    if (start === null || end === null) return null;
    const north = sin(((end[0] - start[0]) * RADIANS) / 2);
    const east = sin(((end[1] - start[1]) * RADIANS) / 2);
    const chord =
      north * north + cos(start[0] * RADIANS) * cos(end[0] * RADIANS) * east * east;
    return 2 * EARTH_METRES * asin(min(1, sqrt(chord)));
  }

  return { value: valueOf, age, clamp, round, distance };
})
