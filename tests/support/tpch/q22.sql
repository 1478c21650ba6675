SELECT cntrycode, count(*) AS numcust, sum(c_acctbal) AS totacctbal
FROM (
  SELECT substring(c_phone FROM 1 FOR 2) AS cntrycode, c_acctbal
  FROM customer
  WHERE substring(c_phone FROM 1 FOR 2) IN ('13', '31', '23', '29', '30', '18', '17')
    AND c_acctbal > (
      SELECT avg(c_acctbal)
      FROM customer
      WHERE c_acctbal > 0.00
        AND substring(c_phone FROM 1 FOR 2) IN ('13', '31', '23', '29', '30', '18', '17')
    )
    AND NOT EXISTS (
      SELECT *
      FROM orders
      WHERE o_custkey = c_custkey
        /* 2: AND holds('the', o_comment) */
    )
    /* 1: AND holds('the', c_comment) */
) AS custsale
GROUP BY cntrycode
ORDER BY cntrycode;

SELECT count(DISTINCT c_comment)
FROM customer
WHERE substring(c_phone FROM 1 FOR 2) IN ('13', '31', '23', '29', '30', '18', '17')
  AND c_acctbal > (
    SELECT avg(c_acctbal)
    FROM customer
    WHERE c_acctbal > 0.00
      AND substring(c_phone FROM 1 FOR 2) IN ('13', '31', '23', '29', '30', '18', '17')
  )
  AND NOT EXISTS (
    SELECT *
    FROM orders
    WHERE o_custkey = c_custkey
  );

SELECT count(DISTINCT o_comment)
FROM orders, customer
WHERE o_custkey = c_custkey
  AND substring(c_phone FROM 1 FOR 2) IN ('13', '31', '23', '29', '30', '18', '17')
  AND c_acctbal > (
    SELECT avg(c_acctbal)
    FROM customer
    WHERE c_acctbal > 0.00
      AND substring(c_phone FROM 1 FOR 2) IN ('13', '31', '23', '29', '30', '18', '17')
  );
