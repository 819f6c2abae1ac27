-- Set a budget's counter to what the ledger says and what running requests hold, unless somebody
-- was faster.
--
-- ARGV: key of the counter, used (decimal text), second at which it may be forgotten (0: never)

local key = ARGV[1]
if redis.call('HSETNX', key, 'used', ARGV[2]) == 0 then
  return 0
end
redis.call('HSET', key, 'held', 0)
for _, id in ipairs(redis.call('HKEYS', HOLDS)) do
  local plan, _, target = read_hold(id)
  for _, budget in ipairs(plan.budgets) do
    if budget.key == key then
      redis.call('HINCRBY', key, 'held', budget.cost)
    end
  end
  if target and target.overflow and target.overflow.key == key then
    redis.call('HINCRBY', key, 'held', target.overflow.cost)
  end
end
if tonumber(ARGV[3]) > 0 then
  redis.call('EXPIREAT', key, ARGV[3])
end
return 1
