-- Redis went back in time: forget the counters of money, so that they are rebuilt from the ledger.
--
-- ARGV: how many settled requests the caller knows of
-- Returns how many counters were forgotten.

local known = tonumber(ARGV[1])
if known <= (tonumber(redis.call('GET', SETTLED)) or 0) then
  return 0
end
redis.call('SET', SETTLED, ARGV[1])
local forgotten = 0
for _, family in ipairs({ 'budget', 'overflow' }) do
  local cursor = '0'
  repeat
    local pattern = 'inferadmin.gateway.' .. family .. ':*'
    local found = redis.call('SCAN', cursor, 'MATCH', pattern, 'COUNT', 1000)
    cursor = found[1]
    for _, key in ipairs(found[2]) do
      forgotten = forgotten + redis.call('DEL', key)
    end
  until cursor == '0'
end
return forgotten
