-- Replace what a request held by what it used, and append its usage event. Safe to run twice.
--
-- ARGV: request id, event (JSON), tokens used, cost (decimal text), currency, stream, field
-- Without an event the request never ran: everything is given back and nothing is recorded.
--
-- Returns 1, or 0 when that had been done before.

local id, event, tokens, cost, currency = ARGV[1], ARGV[2], tonumber(ARGV[3]), ARGV[4], ARGV[5]

if not redis.call('SET', settled_key(id), 1, 'NX', 'EX', SETTLED_TTL) then
  return 0
end
local plan, at = take_hold(id)
if plan then
  replace_holds(id, plan, at, tokens, cost, currency)
  if event == '' then
    for _, window in ipairs(plan.windows) do
      if not window.tokens then
        window_give_back(window.key, at, window.amount)
      end
    end
  end
end
if event ~= '' then
  redis.call('XADD', ARGV[6], '*', ARGV[7], event)
end
return 1
