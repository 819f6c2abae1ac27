-- Leave the target that a request has a place on, and take the first of others that has room.
--
-- ARGV: request id, index from 0 of each target to look at, the best first …
--
-- Returns {"ok", index taken, -1 for none}
--      or {"seed", key of a budget counter that is missing}
--      or {"gone"} when the request holds nothing any more

local id = ARGV[1]
local plan, at, target, text, lost = read_hold(id)
if not plan then
  return { 'gone' }
end

if target then
  target_leave(id, target, {})
end
local taken, missing = 0, nil
for position = 2, #ARGV do
  local index = tonumber(ARGV[position]) + 1
  local has_room, counter = target_room(plan.targets[index])
  if has_room then
    taken = index
    break
  end
  missing = missing or counter
end
if taken > 0 then
  target_take(id, plan.targets[taken])
end
write_hold(id, at, taken, text, lost)
if taken == 0 and missing then
  return { 'seed', missing }
end
return { 'ok', taken - 1 }
