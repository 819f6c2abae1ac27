-- Hold everything that a request may use, or nothing.
--
-- ARGV: request id, plan (JSON), seconds of the lease
-- plan: windows [{key, amount, limit, tokens?}], slots [{key, limit}],
--       budgets [{key, cost, amount, currency}]; cost and amount are decimal text
--
-- Returns {"ok", remaining and seconds to reset of each window …, remaining of each slot …}
--      or {"full", "windows" | "slots" | "budgets", its index from 0, seconds to wait}
--      or {"seed", index from 0 of each budget whose counter is missing …}
--      or {"gone"} when the request has been released already.

local id, text, lease = ARGV[1], ARGV[2], tonumber(ARGV[3])
local plan = cjson.decode(text)

-- Doubles are exact up to 2^53 only: in halves of nine digits the sum of some int64 stays exact.
local function halves(picos)
  return tonumber(string.sub(picos, 1, -10)) or 0, tonumber(string.sub(picos, -9))
end

-- True when the other amounts together are more than the first.
local function exceeds(amount, ...)
  local high, low = halves(amount)
  high, low = -high, -low
  for _, picos in ipairs({ ... }) do
    local more_high, more_low = halves(picos)
    high, low = high + more_high, low + more_low
  end
  high, low = high + math.floor(low / 1e9), low % 1e9
  return high > 0 or (high == 0 and low > 0)
end

-- Seconds until enough old seconds have left the window.
local function window_wait(key, first, over)
  for old = first, second do
    over = over - (tonumber(redis.call('HGET', key, old)) or 0)
    if over <= 0 then
      return old + WINDOW_SECONDS + 1 - second
    end
  end
  return WINDOW_SECONDS
end

local function missing_budgets()
  local missing = { 'seed' }
  for index, budget in ipairs(plan.budgets) do
    if redis.call('EXISTS', budget.key) == 0 then
      table.insert(missing, index - 1)
    end
  end
  return missing
end

if redis.call('EXISTS', settled_key(id)) == 1 then
  return { 'gone' }
end
local missing = missing_budgets()
if #missing > 1 then
  return missing
end

local answer = { 'ok' }
for index, window in ipairs(plan.windows) do
  local sum, first = window_sum(window.key)
  local over = sum + window.amount - window.limit
  if over > 0 then
    return { 'full', 'windows', index - 1, window_wait(window.key, first, over) }
  end
  table.insert(answer, -over)
  table.insert(answer, first + WINDOW_SECONDS + 1 - second)
end
for index, slot in ipairs(plan.slots) do
  local left = slot.limit - redis.call('SCARD', slot.key) - 1
  if left < 0 then
    return { 'full', 'slots', index - 1, 1 }
  end
  table.insert(answer, left)
end
for index, budget in ipairs(plan.budgets) do
  local state = redis.call('HMGET', budget.key, 'used', 'held')
  local used, held = state[1], state[2] or '0'
  -- A budget that is spent refuses even what costs nothing.
  local is_spent = not exceeds(used, budget.amount)
  if is_spent or exceeds(budget.amount, used, held, budget.cost) then
    return { 'full', 'budgets', index - 1, 0 }
  end
end

for _, window in ipairs(plan.windows) do
  window_add(window.key, second, window.amount)
end
for _, slot in ipairs(plan.slots) do
  redis.call('SADD', slot.key, id)
end
for _, budget in ipairs(plan.budgets) do
  redis.call('HINCRBY', budget.key, 'held', budget.cost)
end
redis.call('HSET', HOLDS, id, second .. ' ' .. text)
redis.call('ZADD', LEASES, second + lease, id)
return answer
