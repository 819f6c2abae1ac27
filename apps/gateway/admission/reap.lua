-- Give back what dead workers hold, and append the `lost` event that each request left behind.
--
-- ARGV: most requests at once, stream, field
-- Returns how many were reaped.

local ids = redis.call('ZRANGEBYSCORE', LEASES, '-inf', second, 'LIMIT', 0, tonumber(ARGV[1]))
for _, id in ipairs(ids) do
  local plan, at = take_hold(id)
  redis.call('ZREM', LEASES, id)
  if plan then
    local lost = plan.lost
    replace_holds(id, plan, at, nil, lost.cost, lost.currency)
    redis.call('SET', settled_key(id), 1, 'EX', SETTLED_TTL)
    redis.call('XADD', ARGV[2], '*', ARGV[3], lost.event)
  end
end
return #ids
