-- Hold everything that a request may use, or nothing.
--
-- ARGV: request id, plan, charges, event, seconds of the lease, settled requests known of
--
-- Returns {"ok", index from 0 of the target taken (-1: none is wanted), remaining and seconds to
--          reset of each window …, remaining of each slot …, used and held of each budget …}
--      or {"full", of each that is: family, index from 0, seconds to wait (0: as long as a budget
--          runs), used and held of a budget …}
--      or {"busy"} when no target has room
--      or {"seed", key of each budget counter that is missing …}
--      or {"gone"} when the request has been released already
--      or {"back"} when Redis knows of fewer settled requests than the caller

local id, text, lease = ARGV[1], ARGV[2], tonumber(ARGV[5])
local plan = cjson.decode(text)

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

if redis.call('EXISTS', settled_key(id)) == 1 then
  return { 'gone' }
end
if tonumber(ARGV[6]) > (tonumber(redis.call('GET', SETTLED)) or 0) then
  return { 'back' }
end

local answer, full, missing = { 'ok', -1 }, { 'full' }, { 'seed' }
local function refuse(family, index, wait, used, held)
  for _, item in ipairs({ family, index - 1, wait, used or '0', held or '0' }) do
    table.insert(full, item)
  end
end

for index, window in ipairs(plan.windows) do
  local sum, first = window_sum(window.key)
  local over = sum + window.amount - window.limit
  if over > 0 then
    refuse('windows', index, window_wait(window.key, first, over))
  end
  table.insert(answer, -over)
  table.insert(answer, first + WINDOW_SECONDS + 1 - second)
end
for index, slot in ipairs(plan.slots) do
  local left = slot.limit - redis.call('SCARD', slot.key) - 1
  if left < 0 then
    refuse('slots', index, 1)
  end
  table.insert(answer, left)
end
for index, budget in ipairs(plan.budgets) do
  local used, held, refuses = budget_state(budget)
  if not used then
    table.insert(missing, budget.key)
  elseif refuses then
    refuse('budgets', index, 0, used, held)
  end
  table.insert(answer, used)
  table.insert(answer, held)
end
if #missing > 1 then
  return missing
end
if #full > 1 then
  return full
end

local taken = 0
for index, target in ipairs(plan.targets) do
  local has_room, counter = target_room(target)
  if has_room == nil then
    return { 'seed', counter }
  end
  if has_room then
    taken = index
    break
  end
end
if taken == 0 and #plan.targets > 0 then
  return { 'busy' }
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
if taken > 0 then
  target_take(id, plan.targets[taken])
end
write_hold(id, second, taken, text, ARGV[3] .. '\n' .. ARGV[4])
redis.call('ZADD', LEASES, second + lease, id)
answer[2] = taken - 1
return answer
