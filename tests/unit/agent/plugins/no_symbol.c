/* A shared object that is no plugin. */
extern const int aq_nothing;
const int aq_nothing = 1;
