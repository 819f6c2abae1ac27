-- Functions that every admission script starts with. All times are the server's, in seconds.
--
-- window:<…>    hash   sum, first (oldest second kept), and one field a second with what it counted
-- slots:<…>     set    ids of the requests that run
-- budget:<…>    hash   used, held: pico-units as decimal text, for they pass 2^53
-- overflow:<…>  hash   the same
-- holds         hash   request id → "<second> <target taken, 0: none> <plan>\n<charges>\n<event>"
-- leases        zset   request id → second at which the hold may be reaped
-- settled       string how many requests were settled: less than before means Redis went back
--
-- plan (JSON): windows [{key, limit, amount, tokens?}], slots [{key, limit}],
--   budgets [{key, amount, currency, soft?, cost}], targets [{key?, limit?, overflow?: a budget}]
--   amount and cost are decimal text
-- charges (JSON): what a request costs a budget, decimal text by currency
-- The last two parts of a hold are what is charged and recorded when its worker dies.
--
-- The keys of a request lie in many slots, so a Redis Cluster cannot run this.

local HOLDS = 'inferadmin.gateway.holds'
local LEASES = 'inferadmin.gateway.leases'
local SETTLED = 'inferadmin.gateway.settled'
local WINDOW_SECONDS = 60
local WINDOW_TTL = 150
local SETTLED_TTL = 120
local MOST_PICOS = '9200000000000000000'

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

-- Doubles are exact up to 2^53 only: in halves of nine digits the sum of some int64 stays exact.
local function halves(picos)
  local sign = 1
  if string.sub(picos, 1, 1) == '-' then
    sign, picos = -1, string.sub(picos, 2)
  end
  return sign * (tonumber(string.sub(picos, 1, -10)) or 0), sign * tonumber(string.sub(picos, -9))
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

-- Used, held, and whether the budget refuses its cost; nil when the counter is missing.
local function budget_state(budget)
  local state = redis.call('HMGET', budget.key, 'used', 'held')
  local used, held = state[1], state[2] or '0'
  if not used then
    return nil
  end
  if budget.soft then
    return used, held, exceeds(MOST_PICOS, used, held, budget.cost)
  end
  -- A budget that is spent refuses even what costs nothing.
  local is_spent = not exceeds(used, budget.amount)
  return used, held, is_spent or exceeds(budget.amount, used, held, budget.cost)
end

-- A counter that is missing is left missing: it will be rebuilt from the ledger.
local function budget_replace(budget, charges)
  local used = charges[budget.currency] or '0'
  if (used ~= '0' or budget.cost ~= '0') and redis.call('HEXISTS', budget.key, 'used') == 1 then
    redis.call('HINCRBY', budget.key, 'held', negative(budget.cost))
    redis.pcall('HINCRBY', budget.key, 'used', used) -- fails where 64 bits end
  end
end

-- Take a place on a target, or give it back.
local function target_take(id, target)
  if target.limit then
    redis.call('SADD', target.key, id)
  end
  if target.overflow then
    redis.call('HINCRBY', target.overflow.key, 'held', target.overflow.cost)
  end
end

local function target_leave(id, target, charges)
  if target.limit then
    redis.call('SREM', target.key, id)
  end
  if target.overflow then
    budget_replace(target.overflow, charges)
  end
end

-- Whether a target has room; nil and the counter's key when that is missing.
local function target_room(target)
  if target.limit and redis.call('SCARD', target.key) >= target.limit then
    return false
  end
  if target.overflow then
    local used, _, refuses = budget_state(target.overflow)
    if not used then
      return nil, target.overflow.key
    end
    return not refuses
  end
  return true
end

-- Parts of a hold, nil when there is none: plan, second it was made in, target taken, its texts.
local function read_hold(id)
  local hold = redis.call('HGET', HOLDS, id)
  if not hold then
    return nil
  end
  local at, taken, text, lost = string.match(hold, '^(%d+) (%d+) ([^\n]*)\n(.*)$')
  local plan = cjson.decode(text)
  return plan, tonumber(at), plan.targets[tonumber(taken)], text, lost
end

local function write_hold(id, at, taken, text, lost)
  redis.call('HSET', HOLDS, id, at .. ' ' .. taken .. ' ' .. text .. '\n' .. lost)
end

local function drop_hold(id)
  redis.call('HDEL', HOLDS, id)
  redis.call('ZREM', LEASES, id)
end

-- Replace every hold of a plan; tokens nil keeps what was estimated.
local function replace_holds(id, plan, at, target, tokens, charges)
  for _, window in ipairs(plan.windows) do
    if window.tokens and tokens then
      window_replace(window.key, at, window.amount, tokens)
    end
  end
  for _, slot in ipairs(plan.slots) do
    redis.call('SREM', slot.key, id)
  end
  for _, budget in ipairs(plan.budgets) do
    budget_replace(budget, charges)
  end
  if target then
    target_leave(id, target, charges)
  end
end
