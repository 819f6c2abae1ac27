-- Replace what a request held by what it used, and append its usage event. Safe to run twice.
--
-- ARGV: request id, event (JSON), tokens used, charges (JSON), stream, field
-- Without an event the request never ran: everything is given back and nothing is recorded.
--
-- Returns how many requests were settled so far, or 0 when this one had been before.

local id, event, tokens = ARGV[1], ARGV[2], tonumber(ARGV[3])

if not redis.call('SET', settled_key(id), 1, 'NX', 'EX', SETTLED_TTL) then
  return 0
end
local plan, at, target = read_hold(id)
if plan then
  drop_hold(id)
  replace_holds(id, plan, at, target, tokens, cjson.decode(ARGV[4]))
  if event == '' then
    for _, window in ipairs(plan.windows) do
      if not window.tokens then
        window_give_back(window.key, at, window.amount)
      end
    end
  end
end
if event ~= '' then
  redis.call('XADD', ARGV[5], '*', ARGV[6], event)
end
return redis.call('INCR', SETTLED)
