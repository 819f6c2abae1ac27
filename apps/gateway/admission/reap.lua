-- Give back what dead workers hold, and append the `lost` event that each request left behind.
--
-- ARGV: most requests at once, stream, field
-- Returns how many were reaped.

local ids = redis.call('ZRANGEBYSCORE', LEASES, '-inf', second, 'LIMIT', 0, tonumber(ARGV[1]))
for _, id in ipairs(ids) do
  local plan, at, target, _, lost = read_hold(id)
  drop_hold(id)
  if plan then
    local charges, event = string.match(lost, '^([^\n]*)\n(.*)$')
    replace_holds(id, plan, at, target, nil, cjson.decode(charges))
    redis.call('SET', settled_key(id), 1, 'EX', SETTLED_TTL)
    redis.call('XADD', ARGV[2], '*', ARGV[3], event)
    redis.call('INCR', SETTLED)
  end
end
return #ids
