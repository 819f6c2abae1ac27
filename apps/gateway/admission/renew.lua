-- Lengthen the leases of requests that still run.
--
-- ARGV: seconds of the lease, request id …

for index = 2, #ARGV do
  redis.call('ZADD', LEASES, 'XX', second + tonumber(ARGV[1]), ARGV[index])
end
return #ARGV - 1
