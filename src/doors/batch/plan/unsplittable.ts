/** A query, or a part of one, that this door does not know how to cut: the whole query runs as one task then. */
export class Unsplittable extends Error {
  constructor(why: string) {
    super(why);
    this.name = "Unsplittable";
  }
}
