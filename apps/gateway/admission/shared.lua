-- Functions that every admission script starts with. All times are the server's, in seconds.
--
-- window:<…>  hash   sum, first (oldest second kept), and one field a second with what it counted
-- slots:<…>   set    ids of the requests that run
-- budget:<…>  hash   used, held: pico-units as decimal text, for they pass 2^53
-- holds       hash   request id → "<second> <plan>"
-- leases      zset   request id → second at which the hold may be reaped
--
-- The keys of a request lie in many slots, so a Redis Cluster cannot run this.

local HOLDS = 'inferadmin.gateway.holds'
local LEASES = 'inferadmin.gateway.leases'
local WINDOW_SECONDS = 60
local WINDOW_TTL = 150
local SETTLED_TTL = 120

local second = tonumber(redis.call('TIME')[1])

local function settled_key(id)
  return 'inferadmin.gateway.settled:' .. id
end

-- What a window counts now. A second is kept for 60 more, so that no 60 s hold more than the sum.
local function window_sum(key)
  local state = redis.call('HMGET', key, 'sum', 'first')
  local sum = tonumber(state[1]) or 0
  local first = tonumber(state[2]) or second
  local kept = second - WINDOW_SECONDS
  if first >= kept then
    return sum, first
  end
  for old = first, kept - 1 do
    local count = redis.call('HGET', key, old)
    if count then
      sum = sum - tonumber(count)
      redis.call('HDEL', key, old)
    end
  end
  redis.call('HSET', key, 'sum', sum, 'first', kept)
  return sum, kept
end

local function window_add(key, at, amount)
  if amount == 0 then
    return
  end
  redis.call('HINCRBY', key, at, amount)
  redis.call('HINCRBY', key, 'sum', amount)
  redis.call('HSETNX', key, 'first', at)
  redis.call('EXPIRE', key, WINDOW_TTL)
end

-- Take back what a request counted in its own second, unless that second has left the window.
local function window_give_back(key, at, amount)
  if amount > 0 and redis.call('HEXISTS', key, at) == 1 then
    redis.call('HINCRBY', key, at, -amount)
    redis.call('HINCRBY', key, 'sum', -amount)
  end
end

-- Replace what was held by what was used; the excess counts from now on.
local function window_replace(key, at, held, used)
  if used < held then
    window_give_back(key, at, held - used)
  else
    window_add(key, second, used - held)
  end
end

local function negative(picos)
  return picos == '0' and '0' or '-' .. picos
end

-- A counter that is missing is left missing: it will be rebuilt from the ledger.
local function budget_replace(key, held, used)
  if redis.call('EXISTS', key) == 1 then
    redis.call('HINCRBY', key, 'held', negative(held))
    redis.call('HINCRBY', key, 'used', used)
  end
end

-- The plan of a hold and the second it was made in, taken out; nil when there is none.
local function take_hold(id)
  local hold = redis.call('HGET', HOLDS, id)
  if not hold then
    return nil
  end
  redis.call('HDEL', HOLDS, id)
  redis.call('ZREM', LEASES, id)
  local at, plan = string.match(hold, '^(%d+) (.*)$')
  return cjson.decode(plan), tonumber(at)
end

-- Replace every hold of a plan; tokens nil keeps what was estimated.
local function replace_holds(id, plan, at, tokens, cost, currency)
  for _, window in ipairs(plan.windows) do
    if window.tokens and tokens then
      window_replace(window.key, at, window.amount, tokens)
    end
  end
  for _, slot in ipairs(plan.slots) do
    redis.call('SREM', slot.key, id)
  end
  for _, budget in ipairs(plan.budgets) do
    budget_replace(budget.key, budget.cost, budget.currency == currency and cost or '0')
  end
end
