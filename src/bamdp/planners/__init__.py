from bamdp.planners.base import Candidate, Plan, Planner
from bamdp.planners.dss import DSS
from bamdp.planners.thompson import ThompsonSampling
