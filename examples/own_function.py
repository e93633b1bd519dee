"""A world of your own from a function: a shop that orders goods overnight.

The state is the stock in the morning (0 to 5), the action how much to order (0 to 3), demand is random, and what a day
earns is seen only when it is over: neither transitions nor rewards are known. Run: python examples/own_function.py
"""

import numpy as np

import bamdp


def day(stock: int, order: int, rng: np.random.Generator) -> tuple[int, float, bool]:
    """Simulate one day; return (stock of the next morning, profit, False since it never ends)."""
    goods = min(stock + order, 5)
    sold = min(int(rng.poisson(1.5)), goods)
    return goods - sold, 1.0 * sold - 0.4 * order - 0.05 * goods, False


def main() -> None:
    shop = bamdp.from_function(day, n_states=6, n_actions=4, start=2, name="shop")
    profits = {}
    for planner in (bamdp.Random(), bamdp.ThompsonSampling(resample="discount")):
        agent = bamdp.Agent(
            planner,
            prior=bamdp.Dirichlet(alpha=0.2),
            rewards=bamdp.NormalGamma(by="next"),
            n_states=6,
            n_actions=4,
            discount=0.95,
            seed=0,
        )
        run = bamdp.simulate(agent, shop, steps=1500, seed=0)
        profits[type(planner).__name__] = run.rewards[-500:].mean()
    for name, profit in profits.items():
        print(f"{name}: {profit:.2f} per day, in the last 500 days")
    orders = [agent.plan(stock).action for stock in range(6)]
    print("orders with 0 to 5 in stock:", orders)


if __name__ == "__main__":
    main()
