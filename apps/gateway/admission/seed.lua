-- Set a budget's counter to what the ledger says, unless somebody was faster.
--
-- ARGV: key of the counter, used (decimal text), second at which it may be forgotten (0: never)

if redis.call('HSETNX', ARGV[1], 'used', ARGV[2]) == 1 and tonumber(ARGV[3]) > 0 then
  redis.call('EXPIREAT', ARGV[1], ARGV[3])
end
return 1
